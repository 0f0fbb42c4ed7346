"""Rows of views, creation, copies, shapes and random numbers, one expression at a time, against PyTorch: values, shape,
strides, dtype, offset, version, node name, whether the result is a view; or the exception and its text.

Invariant: every line of a table means the same in both libraries; a line that cannot is not here.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy
import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

VIEWS = r"""
x.view(5,5)
x.view(-1,-1)
x.view(-1,5)
x.view(-2,12)
x.view(2,-3)
e.view(-1,0)
e.view(0,-1)
e.view(-1,3)
x.transpose(0,1).view(6,4)
x.reshape(5,5)
x.reshape(-1,5)
s.view(1,1)
s.view(())
x.expand(3,3,4)
x.expand(3,4)
x.expand(-1,2,3,4)
x.expand(2,-1,4)
x.expand(-2,3,4)
s.expand(2,3)
e.expand(1,3)
x.permute(0,1)
x.permute(0,0,1)
x.permute(0,1,3)
x.permute(2,0,1)
x.permute((2,0,-2))
x.transpose(0,3)
x.transpose(0,-4)
x.transpose(0,2)
s.transpose(0,0)
s.transpose(0,-1)
s.transpose(0,1)
x.t()
x[0].t()
s.t()
x.select(0,5)
x.select(3,0)
x.select(1,2)
s.select(0,0)
x.select(0,-3)
SLICE(s,0)
SLICE(x,0,0,1,0)
SLICE(x,3)
SLICE(x,1,-5,10,2)
SLICE(x,1,2,1)
x.narrow(0,1,2)
x.narrow(0,-1,1)
x.narrow(0,-3,1)
x.narrow(0,0,-1)
s.narrow(0,0,1)
x.narrow(1,3,0)
x.narrow(1,torch.tensor(1),1)
x.squeeze(3)
x.squeeze()
torch.ones(1,2,1).squeeze()
torch.ones(1,2,1).squeeze(0)
torch.ones(1,2,1).squeeze(1)
torch.ones(1,2,1).squeeze((0,2))
torch.ones(1,2,1).squeeze([-1])
x.unsqueeze(4)
x.unsqueeze(-5)
x.unsqueeze(-4)
x.unsqueeze(1)
x.unsqueeze(-1)
s.unsqueeze(0)
s.unsqueeze(1)
x.squeeze((0,0))
s.squeeze(0)
x.as_strided((2,2),(1,))
x.as_strided((2,2),(1,2))
x.as_strided((2,2),(1,2),3)
x[1].as_strided((2,2),(1,2))
x.as_strided((100,),(1,))
x.as_strided((2,),(-1,))
x.as_strided((2,),(1,),-1)
x.as_strided((2,),(1,),23)
x.diagonal()
x.diagonal(0,0,0)
x.diagonal(5)
x.diagonal(-5)
x.diagonal(1,0,2)
x.diagonal(-1,0,2)
x.diagonal(0,0,3)
x.diagonal(offset=1,dim1=1,dim2=2)
s.diagonal()
x.unfold(2,5,1)
x.unfold(2,2,0)
x.unfold(2,-1,1)
x.unfold(3,1,1)
x.unfold(2,3,1)
x.unfold(1,2,2)
s.unfold(0,1,1)
s.unfold(0,2,1)
x.unfold(2,0,1)
x.split(0)
x.split(2,1)
torch.split(x,1)
torch.split(x,[1,1])
torch.split(x,split_size_or_sections=1)
torch.split(tensor=x,split_size_or_sections=1,dim=1)
e.split(0)
x.split(-1)
s.split(1)
x.split([1,2])
x.split([-1,3])
x.split_with_sizes([1,2])
x.split([1,3],2)
x.split(5,3)
x.chunk(0)
x.chunk(-1)
x.chunk(2,1)
s.chunk(1)
e.chunk(3)
x.chunk(5,2)
x.tensor_split(0)
x.tensor_split(2,1)
x.tensor_split((1,3),2)
x.tensor_split(torch.tensor([1,3]),2)
x.tensor_split(torch.tensor(2),2)
x.tensor_split(5,2)
s.tensor_split(1)
x.tensor_split((1,))
x.unbind(3)
x.unbind()
x.unbind(-1)
s.unbind()
e.unbind()
x.flatten(2,1)
x.flatten(0,3)
x.flatten()
x.flatten(1)
x.flatten(0,1)
x.transpose(0,1).flatten()
s.flatten()
x.flatten(1,1)
x.unflatten(2,(3,2))
x.unflatten(2,(3,-1))
x.unflatten(2,())
x.unflatten(3,(3,))
x.unflatten(2,(2,-1))
x.unflatten(2,(2,2))
torch.unflatten(x,2,[2,2])
x.ravel()
x.transpose(0,1).ravel()
x.view(torch.float64)
x.view(torch.int16)
x.view(torch.int32)
x.view(dtype=torch.int32)
x.view(size=(6,4))
x.view([6,4])
x.view((6,4))
x.view(torch.Size([6,4]))
x.transpose(0,2).view(torch.int16)
x.transpose(0,2).view(torch.float64)
x.transpose(0,2).view(torch.int32)
torch.arange(6.).view(2,3).view(torch.float64)
s.view(torch.int16)
s.view(torch.int32)
s.view(torch.float64)
torch.arange(6.)[1:].view(torch.float64)
torch.arange(6.)[1:5].view(torch.float64)
torch.arange(6.).view(3,2)[1:].view(torch.float64)
torch.view_as_complex(x)
torch.view_as_complex(x.view(12,2))
torch.view_as_complex(x.view(12,2).to(torch.int))
torch.view_as_complex(x.view(2,12).t())
torch.view_as_complex(torch.arange(6.)[1:5].view(2,2))
torch.view_as_complex(torch.ones(2,2).as_strided((2,2),(1,1)))
torch.view_as_complex(torch.ones(9).as_strided((2,2),(3,1)))
torch.view_as_complex(s)
torch.view_as_real(x)
torch.view_as_real(torch.view_as_complex(x.view(12,2)))
torch.view_as_complex(x.view(12,2)).real
torch.view_as_complex(x.view(12,2)).imag
torch.real(x)
x.real
x.imag
x.H
x.mH
x[0].H
x[0].T
x.mT
s.mT
x[0,0].mT
x.adjoint()
s.adjoint()
x[0,0].adjoint()
s.T
x.T
s.H
x[0,0].H
x.movedim((0,1),(1,))
x.movedim((0,0),(1,2))
x.movedim((0,1),(0,0))
x.movedim((0,1),(2,0))
x.movedim(0,2)
x.moveaxis(0,-1)
x.movedim(0,3)
x.hsplit(3)
x.hsplit(2)
x.hsplit([1])
s.hsplit(2)
x[0,0].hsplit(2)
x.vsplit(2)
x[0,0].vsplit(2)
x.dsplit(3)
x.dsplit(2)
x.dsplit((1,))
x[0].dsplit(2)
x.hsplit(0)
torch.broadcast_tensors(x,torch.ones(3,1))
torch.broadcast_tensors(x,torch.ones(2,4))
torch.broadcast_tensors(x,torch.ones(2,1))
torch.broadcast_tensors()
x.broadcast_to(3,4)
x.broadcast_to((2,2,3,4))
torch.broadcast_to(s,(2,))
x.expand_as(torch.ones(2,2,3,4))
x.view_as(torch.ones(4,6))
x.reshape_as(torch.ones(4,6))
x.transpose(0,1).reshape_as(torch.ones(4,6))
x.swapaxes(0,5)
x.swapaxes(0,1)
x.swapdims(0,1)
x.fill_(torch.ones(2))
x.fill_(1j)
x.fill_(3)
x.fill_(torch.tensor(3))
x.zero_()
torch.fill(x,2)
x.copy_(torch.ones(5))
x.copy_(torch.ones(3,2,3,4))
x.copy_(torch.ones(2,1,1))
x.copy_(torch.ones(2,1,1,dtype=torch.int8))
x.int().copy_(x+0.5)
x.flatten(0,-1).copy_(3)
s.expand(3).copy_(torch.ones(3))
x.view(-1)[1:].copy_(x.view(-1)[:-1])
x.to(memory_format=torch.channels_last)
x.contiguous(memory_format=torch.channels_last)
x.contiguous(memory_format=torch.preserve_format)
x.contiguous()
x.transpose(0,1).contiguous()
x.clone(memory_format=torch.channels_last)
x.clone(memory_format=torch.contiguous_format)
x.transpose(0,1).clone()
x.transpose(0,1).clone(memory_format=torch.contiguous_format)
torch.ones(2,3,4,5).clone(memory_format=torch.channels_last)
torch.ones(2,3,4,5,2).clone(memory_format=torch.channels_last_3d)
torch.ones(2,3,4,5)[...,::2].clone()
torch.ones(2,3,4,5).permute(0,2,3,1)[...,::2].clone()
torch.ones(2,3,4,5).permute(0,2,3,1)[:,:,::2].clone()
torch.ones(3,1).expand(3,4).clone()
torch.ones(1,4).expand(3,4).clone()
torch.ones(4,1,3).permute(2,1,0).expand(3,4,4).clone()
torch.ones(2,3)[::2].to(torch.int)
torch.ones(2,3).t().to(torch.int)
torch.ones(3,1).expand(3,4).to(torch.int)
torch.ones(3,1).expand(3,4).to(torch.int,memory_format=torch.contiguous_format)
torch.ones(2,3,4,5).to(memory_format=torch.channels_last)
torch.ones(2,3,4,5).permute(0,2,3,1).contiguous().permute(0,3,1,2).to(memory_format=torch.channels_last)
torch.zeros_like(torch.ones(3,1).expand(3,4))
torch.empty(0,3,4).transpose(0,1).clone()
torch.ones(2,3).t().reshape(6)
x.to(x.int())
x.to("meta")
x.to(torch.device("meta"),torch.int)
x.to("cpu") is x
x.to(device="cpu",dtype=torch.float32) is x
x.to(torch.float32) is x
x.to(torch.float32,copy=True) is x
x.to(torch.int,False,True)
x.to("cpu",torch.float16,non_blocking=True)
x.to(other=x.double())
x.to()
x.to("foo")
x.to(torch.int,3)
x.to(torch.int,dtype=torch.int)
x.to(float)
x.to("meta").to("cpu")
x.to("meta").cpu()
x.to("meta").copy_(x)
x.copy_(x.to("meta"))
x.float() is x
x.double()
x.half()
x.bfloat16()
x.long()
x.int()
x.short()
x.char()
x.byte()
x.bool()
x.cpu() is x
x.type()
x.int().type()
x.type(torch.int)
x.type("torch.DoubleTensor")
x.type("torch.FooTensor")
x.type_as(torch.ones(2,dtype=torch.int))
x.detach()
x.view(-1).detach()
x.new_zeros(2)
x.T.fill_(3)
torch.squeeze(x,0)
torch.transpose(x,0,1)
torch.permute(x,(2,0,1))
torch.permute(x,dims=(2,0,1))
torch.reshape(x,(6,4))
torch.reshape(x,shape=(6,4))
torch.flatten(x,start_dim=1)
torch.t(x[0])
torch.narrow(x,0,0,1)
torch.select(x,0,1)
torch.select(x,dim=0,index=1)
torch.unsqueeze(x,0)
torch.diagonal(x)
torch.as_strided(x,(2,),(1,))
torch.chunk(x,2)
torch.unbind(x)
torch.movedim(x,0,1)
torch.detach(x)
torch.clone(x)
torch.ravel(x)
torch.adjoint(x)
"""
CREATION = r"""
torch.tensor([[1,2],[3,4,5]])
torch.tensor([[1,2],3])
torch.tensor([1,[2]])
torch.tensor([[1,2],[]])
torch.tensor([])
torch.tensor([[],[]])
torch.tensor(())
torch.tensor(None)
torch.tensor("a")
torch.tensor([None])
torch.tensor(["a"])
torch.tensor({})
torch.tensor([1,2.5])
torch.tensor([1,True])
torch.tensor([True])
torch.tensor([1,2j])
torch.tensor([1.5],dtype=torch.int32)
torch.tensor([2**40],dtype=torch.int32)
torch.tensor([300],dtype=torch.uint8)
torch.tensor([-1],dtype=torch.uint8)
torch.tensor(300,dtype=torch.int8)
torch.tensor(2**63)
torch.tensor(2**64)
torch.tensor([2**63])
torch.tensor([1e400])
torch.tensor(1e39)
torch.tensor(1e39,dtype=torch.float16)
torch.tensor([1j],dtype=torch.float32)
torch.tensor([1.5],dtype=torch.bool)
torch.tensor([float('nan')],dtype=torch.int32)
torch.tensor(1,requires_grad=True)
torch.tensor(1.,requires_grad=True)
torch.tensor([1.],dtype=torch.float16)
torch.tensor([1.],dtype=float)
torch.tensor(np.array([1,2]))
torch.tensor(np.float32(3))
torch.tensor([np.float32(3)])
torch.tensor([np.float64(3),1])
torch.tensor([np.int32(3)])
torch.tensor(np.bool_(True))
torch.tensor([x[0,0],x[0,1]])
torch.tensor([x,x])
torch.tensor([x[0],x[1]])
torch.tensor(x)
torch.tensor(range(3))
torch.tensor([range(3),range(3)])
torch.tensor([np.array([1,2]),np.array([3,4])])
torch.tensor([1,2],device="meta")
torch.tensor(b"ab")
torch.tensor([b"ab"])
torch.tensor(bytearray(b"ab"))
torch.tensor("")
torch.tensor()
torch.tensor(data=[1])
torch.tensor({1,2})
torch.tensor((x for x in [1]))
torch.tensor([[[1]],[[2]]])
torch.tensor([[1,2],[3,4]],dtype=torch.complex64)
torch.zeros(-1)
torch.zeros(2,dtype=torch.int,requires_grad=True)
torch.zeros()
torch.zeros(())
torch.zeros([])
torch.zeros(2.5)
torch.zeros("a")
torch.zeros(2,3,device="foo")
torch.zeros(2,dtype="float32")
torch.zeros(2,dtype=np.float32)
torch.zeros(2,dtype=float)
torch.zeros(2,dtype=int)
torch.full((2,),3)
torch.full((2,),3.)
torch.full((2,),True)
torch.full((2,),1j)
torch.full((2,),1j,dtype=torch.float32)
torch.full((2,),torch.tensor(3.))
torch.full((2,),torch.tensor(3.,requires_grad=True))
torch.full(2,3)
torch.full((2,),1000,dtype=torch.uint8)
torch.full((2,),-1,dtype=torch.uint8)
torch.full((2,),float('inf'),dtype=torch.int32)
torch.ones(2).fill_(1000).dtype
torch.ones(2,dtype=torch.uint8).fill_(1000)
torch.ones(2,dtype=torch.uint8).fill_(-1)
torch.ones(2,dtype=torch.uint8).fill_(2.7)
torch.ones(2,dtype=torch.int32).fill_(2**40)
torch.ones(2,dtype=torch.float16).fill_(1e9)
torch.ones(2,dtype=torch.bool).fill_(2)
torch.arange(5)
torch.arange(5.)
torch.arange(1,5)
torch.arange(1,5,2)
torch.arange(1,2,0.3)
torch.arange(5,1,-1)
torch.arange(5,1)
torch.arange(1,5,-1)
torch.arange(0,5,0)
torch.arange(0,float('inf'))
torch.arange(0,float('nan'))
torch.arange(5,dtype=torch.float16)
torch.arange(True)
torch.arange(5,dtype=torch.bool)
torch.arange(5,dtype=torch.complex64)
torch.arange(0,5,1j)
torch.arange(start=1,end=3)
torch.arange(end=3)
torch.arange(torch.tensor(3))
torch.arange(0.5,3,dtype=torch.int64)
torch.arange(1,3,0.5,dtype=torch.int64)
torch.arange(-2.5,3,dtype=torch.int64)
torch.arange()
torch.arange(2,out=torch.empty(0))
torch.arange(2.5,out=torch.empty(0,dtype=torch.int64))
torch.linspace(0,1,5)
torch.linspace(0,1,1)
torch.linspace(0,1,0)
torch.linspace(0,1,-1)
torch.linspace(0,10,5,dtype=torch.int64)
torch.linspace(0,1j,3)
torch.linspace(1,2,4,dtype=torch.float16)
torch.linspace(torch.tensor(1.),2,4)
torch.logspace(0,2,3)
torch.logspace(0,2,3,base=2)
torch.logspace(0,2,3,dtype=torch.int64)
torch.eye(3)
torch.eye(2,3)
torch.eye(-1)
torch.eye(2,-3)
torch.eye(0)
torch.eye(2,dtype=torch.bool)
torch.tril_indices(3,3)
torch.tril_indices(3,4,1)
torch.triu_indices(3,4,-1)
torch.triu_indices(3,4,-1,dtype=torch.int32)
torch.tril_indices(-3,3)
torch.tril_indices(3,3,dtype=torch.float32)
torch.complex(x,x).dtype
torch.complex(x,x.double())
torch.complex(x,x.int())
torch.complex(x.int(),x.int())
torch.polar(x,x)[0,0]
torch.polar(x,x.double())
torch.empty((2,3),memory_format=torch.channels_last)
torch.empty((2,3),memory_format=torch.preserve_format)
torch.empty((2,3,4,5),memory_format=torch.channels_last).stride()
torch.empty_strided((2,3),(1,2)).stride()
torch.empty_strided((2,3),(1,))
torch.empty_strided((2,3),(-1,1))
torch.empty_strided((2,-3),(1,1))
torch.zeros_like(x.t()).stride()
torch.zeros_like(x,dtype=torch.int,device="meta")
torch.zeros_like(x,memory_format=torch.contiguous_format)
torch.zeros_like(x,requires_grad=True)
torch.full_like(x,2)
torch.full_like(x,2j)
torch.full_like(x.int(),2.5)
torch.ones_like([1])
x.new_zeros(2,3).dtype
x.new_zeros((2,3),dtype=torch.int).dtype
x.new_tensor([1,2]).dtype
x.new_tensor(x)
x.new_full((2,),3).dtype
x.new_full((2,),3j)
x.new_empty(2,3).shape
x.new_ones(2)
x.new_empty_strided((2,3),(1,2)).stride()
x.new(2,3).shape
torch.scalar_tensor(3)
torch.scalar_tensor(3,dtype=torch.int32)
torch.as_tensor([1,2])
torch.as_tensor(x) is x
torch.as_tensor(x,dtype=torch.int)
torch.asarray([1,2])
torch.asarray(x) is x
torch.asarray(x,copy=True) is x
torch.asarray(3)
torch.asarray(np.float32(3))
torch.asarray(b"abcd")
torch.asarray(b"abcd",dtype=torch.uint8)
torch.asarray(bytearray(b"abcd"),dtype=torch.uint8,copy=False)
torch.asarray([1,2],copy=False)
torch.asarray(x,dtype=torch.int,copy=False)
torch.asarray(x,requires_grad=True)
torch.from_numpy([1])
torch.from_numpy(np.array([1,2],dtype="U1"))
torch.from_numpy(np.array([1,2])[::-1])
torch.from_numpy(np.array([1,2],dtype=">i4"))
torch.from_numpy(np.zeros(3,dtype=[("a","i4"),("b","i1")])["a"])
torch.from_numpy(np.array(3.))
torch.frombuffer(b"abcd",dtype=torch.uint8)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16,count=1,offset=2)
torch.frombuffer(bytearray(b"abcde"),dtype=torch.int16)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16,count=3)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16,offset=4)
torch.frombuffer(bytearray(b""),dtype=torch.int16)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16,count=0)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16,count=-2)
torch.frombuffer(3,dtype=torch.int16)
torch.frombuffer(bytearray(b"abcd"),dtype=torch.int16,offset=-1)
torch.frombuffer(bytearray(b"abcd"))
torch.zeros(2,3,out=torch.empty(1))
torch.zeros(2,out=torch.empty(2,dtype=torch.int))
torch.zeros(2,out=torch.empty(2,dtype=torch.int),dtype=torch.float)
torch.full((2,),3,out=torch.empty(2))
torch.ones(2,device=torch.device("meta")).device
torch.Tensor([1,2])
torch.Tensor(2,3).shape
torch.Tensor().shape
torch.Tensor(3).shape
torch.FloatTensor([1]).dtype
torch.IntTensor(2).dtype
torch.LongTensor([1.5])
torch.tensor([torch.ones(1),torch.ones(1)])
torch.tensor([torch.ones(1,1)])
torch.tensor([[torch.tensor(1.)],[2]])
torch.tensor([np.array(3.)])
torch.tensor([2**70],dtype=torch.float64)
torch.tensor([2**70])
torch.tensor([2**63],dtype=torch.uint64)
torch.tensor([-1],dtype=torch.uint64)
torch.tensor([-300],dtype=torch.uint8)
torch.tensor([-200],dtype=torch.uint8)
torch.tensor([1e10],dtype=torch.int32)
torch.tensor([300.],dtype=torch.uint8)
torch.tensor([-3.5],dtype=torch.uint8)
torch.tensor([1,"a"])
torch.tensor([[1],"a"])
torch.tensor([[1.0],None])
torch.tensor([1.0,None],dtype=torch.float32)
torch.tensor([1.0,"a"],dtype=torch.float32)
torch.tensor(["a"],dtype=torch.float32)
torch.tensor("a",dtype=torch.float32)
torch.tensor([1.0,[2.0]],dtype=torch.float32)
torch.tensor([1.0,[2.0]])
torch.tensor([1,[2.0]],dtype=torch.int64)
torch.tensor([True,[2.0]])
torch.tensor([{}])
torch.tensor([object()])
torch.tensor([1.5,2],dtype=torch.int64)
torch.tensor(np.array([1.,2.]),dtype=torch.int32)
torch.tensor(np.array([1,2])[::-1])
torch.tensor(np.array([1,2],dtype=">i4"))
torch.tensor([[True,1],[2.5,3j]])
torch.tensor([True,2.5])
torch.tensor([np.float16(1),1.0])
torch.tensor([np.float64(1),1.0])
torch.tensor([np.int8(1),np.float32(2)])
torch.tensor(np.int8(1),dtype=torch.float16)
torch.tensor([1]*3,dtype=torch.float8_e5m2)
torch.tensor([1+2j],dtype=torch.complex128)
torch.tensor([1j],dtype=torch.int32)
torch.tensor([1j],dtype=torch.bool)
torch.tensor(1j,dtype=torch.float64)
torch.tensor(bytearray(b""))
torch.tensor(memoryview(b"ab"))
torch.tensor(__import__("array").array("d",[1,2]))
torch.tensor(torch.Size([1,2]))
torch.tensor([torch.Size([1,2])])
torch.tensor(__import__("collections").deque([1,2]))
torch.tensor(__import__("collections").OrderedDict())
torch.tensor([torch.tensor(3,dtype=torch.int8), 2.5])
torch.tensor([[1,2],(3,4)])
torch.tensor([[1,2],range(2)])
torch.tensor(3, dtype=torch.bool)
torch.tensor(-1,dtype=torch.uint8)
torch.tensor(float('nan'),dtype=torch.bool)
torch.tensor(-1,dtype=torch.uint16)
torch.tensor(70000,dtype=torch.uint16)
torch.tensor(70000.,dtype=torch.float16)
torch.tensor([70000.],dtype=torch.float16)
torch.tensor(True,dtype=torch.float16)
torch.zeros(2,pin_memory=None)
torch.zeros(2,layout=None)
torch.zeros(2,device=None)
torch.zeros((2,3.))
torch.zeros((2,torch.tensor(3)))
torch.zeros(torch.tensor(3))
torch.zeros(np.int64(3))
torch.zeros((2,True))
torch.zeros(True)
torch.zeros((2,None))
torch.zeros(2,(3,))
torch.zeros((2,),(3,))
torch.zeros(size=(2,))
torch.zeros(2,size=(2,))
torch.zeros(None)
torch.full((2,))
torch.full((2,),"a")
torch.full((2,),None)
torch.empty(2**62)
torch.empty(2**62,2**62)
torch.zeros(-1,2)
torch.ones(-1)
torch.empty(-1)
torch.full((-1,),0)
torch.rand(-1)
torch.zeros_like(x,memory_format=torch.channels_last)
torch.full_like(x)
torch.full_like(x,torch.tensor(3))
x.new_zeros()
x.new_zeros(())
x.new_full((2,),3,requires_grad=True)
x.new_tensor([1],dtype=torch.int)
torch.ones(2).new_tensor([1.5],device="meta")
torch.scalar_tensor("a")
torch.eye(2.5)
torch.eye(2,m=3)
torch.eye(n=2)
torch.arange(1,2,3,4)
torch.arange("a")
torch.arange(2,requires_grad=True)
torch.arange(2.,requires_grad=True)
torch.arange(2**63-1,2**63-1)
torch.arange(0,10,2**62)
torch.arange(torch.tensor(1.),torch.tensor(3.))
torch.arange(1,torch.tensor(3.5))
torch.arange(0,1,0.1,dtype=torch.float64).tolist()[-1]
torch.arange(3,device="meta")
torch.arange(1e20)
torch.arange(0,-5)
torch.arange(0,0)
torch.as_tensor([1,2],dtype=torch.float32,device="meta")
torch.as_tensor(np.array([1,2]),device="meta")
torch.as_tensor(3)
torch.from_numpy(np.array([1,2])).dtype
torch.empty(2,3,dtype=torch.float32).dtype
torch.linspace(0,1,3,dtype=torch.int32)
torch.linspace(3,0,4)
torch.linspace(0,1,3,dtype=torch.bool)
torch.linspace(0j,1,3)
torch.linspace(0,1j,3,dtype=torch.float32)
torch.logspace(0,1,3,dtype=torch.float64)
torch.logspace(0,1,-3)
torch.empty((2,3),device="cpu:0").device
torch.empty((2,3),device=torch.device("cpu",0)).device
torch.empty((2,3),device="cuda").device
"""
SHAPES = r"""
torch.cat([])
torch.cat([s,s])
torch.cat([x,s])
torch.cat([x,x],2)
torch.cat([x,torch.ones(3,4)])
torch.cat([x,torch.ones(3,4)],1)
torch.cat([x,y])
torch.cat([x,e])
torch.cat([e,x],1)
torch.cat([e,e])
torch.cat([torch.empty(0,3),x])
torch.cat([torch.empty(0,4),x])
torch.cat([x,x.int()])
torch.cat([x.int(),x.long()])
torch.cat([x.int(),s.view(1,1).expand(1,3)])
torch.cat([x.t(),x.t()])
torch.cat([c4,c4])
torch.cat([c4,torch.ones(2,3,4,5)])
torch.cat(x)
torch.cat((x,x),dim=-1)
torch.cat((x,x),axis=-1)
torch.cat([x,x],-3)
torch.cat([x,x],out=torch.empty(0))
torch.cat([x,x],out=torch.empty(4,3,dtype=torch.double)).dtype
torch.cat([x,x.to("meta")])
torch.concat([x,x])
torch.concatenate([x,x],axis=1)
torch.stack([])
torch.stack([x,y])
torch.stack([x,torch.ones(3,2)])
torch.stack([x,x],3)
torch.stack([x,x],-1)
torch.stack([s,s])
torch.stack([x,x.int()])
torch.stack([x.t(),x.t()])
torch.hstack([s,s])
torch.hstack([x,x])
torch.hstack([])
torch.vstack([s,s])
torch.vstack([x[0],x])
torch.vstack([])
torch.dstack([x,x])
torch.dstack([s,s])
torch.dstack([])
torch.column_stack([x[0],x[1]])
torch.column_stack([x,x])
torch.column_stack([s,s])
torch.column_stack([])
torch.row_stack([x,x])
torch.flip(x,[0])
torch.flip(x,[0,0])
torch.flip(x,[2])
torch.flip(x.t(),[0])
torch.flip(s,[])
torch.flip(s,[0])
x.flip(0,1)
x.flip(0)
x[0].fliplr()
s.flipud()
x.fliplr()
x.flipud()
x.roll(1)
x.roll(1,0)
x.roll((1,2),(0,1))
x.roll((1,2))
x.roll((1,2),0)
x.roll((),())
x.roll(1,2)
s.roll(1)
s.roll(1,0)
x.t().roll(1)
x.t().roll(1,0)
x.t().roll((1,1),(0,1))
e.roll(1)
x.rot90()
x.rot90(2)
x.rot90(3)
x.rot90(4)
x.rot90(1,[0,0])
x.rot90(1,[0,1,2])
x[0].rot90()
x.rot90(1,[0,2])
x.rot90(-1,[1,0])
y.rot90(1,[1,2])
x.tril()
x.triu(1)
x.t().tril()
x[0].tril()
y.tril(-1)
x.tril_()
x.repeat(2,2)
x.repeat(2)
x.repeat(2,2,2)
x.repeat(0,1)
x.repeat(-1,1)
s.repeat(3)
x.repeat((2,1))
torch.tile(x,(2,))
x.tile(2,2,2)
x.tile(())
x.repeat_interleave(2)
x.repeat_interleave(2,0)
x.repeat_interleave(2,dim=2)
x.repeat_interleave(-1)
s.repeat_interleave(2)
x.repeat_interleave(2,1,output_size=6)
x.repeat_interleave(2,1,output_size=7)
x.repeat_interleave(torch.tensor([1,2]),0)
x.repeat_interleave(torch.tensor([1,2,3]),0)
x.repeat_interleave(torch.tensor(2),0)
torch.repeat_interleave(torch.tensor([1,2,3]))
torch.meshgrid(x[0],x[1],indexing="ij")
torch.meshgrid(x[0],torch.ones(2),indexing="xy")
torch.meshgrid([x[0],s],indexing="ij")
torch.meshgrid(indexing="ij")
torch.meshgrid(x[0],x[0].int(),indexing="ij")
torch.meshgrid(x[0],x[1],indexing="ab")
torch.diag(x)
torch.diag(x[0])
torch.diag(x[0],1)
torch.diag(x,1)
torch.diag(y)
torch.diag(s)
torch.diag_embed(x)
torch.diag_embed(x,1)
torch.diag_embed(x,-1,0,2)
torch.diag_embed(x,0,0,0)
torch.diag_embed(s)
torch.atleast_1d(s)
torch.atleast_2d(x[0])
torch.atleast_3d(x[0])
torch.atleast_3d(x)
torch.atleast_1d([s,x])
torch.atleast_2d(s,x)
torch.constant_pad_nd(x,(1,1))
torch.constant_pad_nd(x,(1,1,2,0),3)
torch.constant_pad_nd(x,(-1,1))
torch.constant_pad_nd(x,(1,))
torch.constant_pad_nd(x,(1,1,1,1,1,1))
torch.constant_pad_nd(x,(-4,0))
torch.constant_pad_nd(x,(-3,0))
torch.constant_pad_nd(x.int(),(1,1),2.5)
torch.constant_pad_nd(c4,(1,1)).stride()
torch.constant_pad_nd(x.t(),(1,1)).stride()
torch.unflatten(x,1,(3,1))
torch.complex(x,x.t()[:2] if 0 else x)
x.t().flip(0).stride()
y.permute(2,0,1)[:, :, ::2].flip(0).stride()
x.expand(2,2,3).flip(0).stride()
"""
RANDOM = r"""
torch.rand(2,3)
torch.rand((2,3),dtype=torch.int)
torch.rand(2,dtype=torch.complex64)
torch.rand(2,generator=g)
torch.randn(2,dtype=torch.int)
torch.randn(3,dtype=torch.complex64)
torch.randn(40,dtype=torch.complex128)
torch.randn(2,dtype=torch.float16)
torch.randn(33,dtype=torch.float16)
torch.randn(33,dtype=torch.bfloat16)
torch.randn(33,dtype=torch.float64)
torch.randn(100)
torch.randn(5,5).t().contiguous()
torch.rand(4,dtype=torch.float16)
torch.rand(4,dtype=torch.bfloat16)
torch.rand(4,dtype=torch.float64)
torch.randint(3,(2,))
torch.randint(1,3,(2,))
torch.randint(3,1,(2,))
torch.randint(3,3,(2,))
torch.randint(0,300,(2,),dtype=torch.uint8)
torch.randint(0,3,(2,),dtype=torch.float32)
torch.randint(0,3,(2,),dtype=torch.bool)
torch.randint(0,2**40,(5,))
torch.randint(-2**62,2**62,(5,))
torch.randint(0,2**28,(5,))
torch.randint(0,2**28-1,(5,))
torch.randint(3,2)
torch.randint(high=3,size=(2,))
torch.randint(low=0,high=3,size=(2,))
torch.randint(3.5,(2,))
torch.randperm(4)
torch.randperm(100)
torch.randperm(0)
torch.randperm(-1)
torch.randperm(4,dtype=torch.float32)
torch.randperm(300,dtype=torch.int8)
torch.randperm(4,dtype=torch.int32)
torch.rand_like(x)
torch.rand_like(x.int())
torch.rand_like(x.t())
torch.randn_like(x.t())
torch.randint_like(x,3)
torch.randint_like(x,1,3)
torch.bernoulli(x*0.5)
torch.bernoulli((x*0.5).double())
torch.bernoulli((x*0.5).t())
torch.bernoulli(x*2)
torch.bernoulli(x.int())
torch.bernoulli(x,p=2)
x.clone().bernoulli_(x*0.3)
x.int().bernoulli_(x*0.3)
x.clone().uniform_()
x.clone().uniform_(-1,2.5)
x.double().uniform_(-1,2.5)
x.clone().uniform_(1,0)
x.clone().uniform_(0,float('inf'))
x.int().uniform_()
x.clone().normal_()
x.clone().normal_(2,3)
torch.ones(50).normal_(2,3)
x.clone().normal_(0,-1)
x.int().normal_()
torch.normal(x,x)
torch.normal(x,-x)
torch.normal(x,2.)
torch.normal(0.,x)
torch.normal(0,1,(2,))
torch.normal(3.,2.,(5,))
torch.normal(0.,-1.,(2,))
torch.normal(x.int(),x)
torch.normal(x.int(),1.)
torch.normal(x, torch.ones(2,1))
torch.normal(x, torch.ones(4))
torch.normal(x,x.double()).dtype
x.clone().random_()
x.clone().random_(5)
x.clone().random_(2,5)
x.clone().random_(5,2)
x.int().random_(5)
x.int().random_()
x.long().random_()
x.double().random_()
x.half().random_()
x.byte().random_()
x.bool().random_()
x.clone().random_(0,2**20)
x.clone().random_(3,to=9)
x.long().random_(3,None)
x.clone().exponential_(-1)
x.clone().exponential_(0)
x.int().exponential_()
x.clone().geometric_(0)
torch.multinomial(x,4)
torch.multinomial(x,4,replacement=True)
torch.multinomial(x*0,1)
torch.multinomial(-x,1)
torch.multinomial(x.int(),2)
torch.multinomial(x,0)
torch.multinomial(torch.ones(2,2,2),1)
torch.multinomial(torch.ones(5),3,True)
torch.manual_seed("a")
torch.manual_seed(2**70)
torch.manual_seed(-1).initial_seed()
torch.initial_seed()
torch.Generator().initial_seed()
torch.Generator().device
torch.Generator(device="meta")
torch.Generator().get_state()
torch.Generator().manual_seed(5).get_state()
torch.get_rng_state().dtype
torch.set_rng_state(torch.ones(3))
torch.set_rng_state(torch.ones(3,dtype=torch.uint8))
[s:=torch.get_rng_state(),a:=torch.randn(5),torch.set_rng_state(s),torch.randn(5)]
(x.clone().requires_grad_()*1).uniform_()
(x.clone().requires_grad_()*1).normal_()
(x.clone().requires_grad_()*1).random_()
torch.bernoulli(x.clone().requires_grad_()*0.5)
torch.normal(x.clone().requires_grad_()*1,x)
torch.normal(x,x.clone().requires_grad_()*1)
torch.normal(x.clone().requires_grad_()*1,2.)
torch.normal(2.,x.clone().requires_grad_()*1)
torch.rand_like(x.clone().requires_grad_())
torch.rand(2,3,out=torch.empty(0))
torch.randint(3,(2,),out=torch.empty(2))
torch.rand(2,device="meta")
torch.ones(2,device="meta").normal_()
torch.rand(2,requires_grad=True)
torch.randn(())
torch.randn([])
torch.randn(2,0)
torch.rand(-1)
torch.empty(3,4)[:, ::2].uniform_()
torch.empty(4,5).t().normal_()
torch.empty(4,5)[:,:3].normal_()
"""
GEOMETRY = r"""
x.squeeze_()
x[:1].squeeze_()
x[:1].squeeze_(0)
x.unsqueeze_(0)
x.transpose_(0,1)
x.t_()
x[0].t_()
x.swapaxes_(0,1)
x.swapdims_(0,1)
x.as_strided_((2,2),(1,2))
x.as_strided_((2,2),(1,2),3)
x.resize_(2,3)
x.resize_((2,3))
x.resize_(2,3,2,2,memory_format=torch.channels_last)
x.resize_as_(torch.ones(3))
x.detach_()
x.view(-1).detach_()
x.set_()
x.set_(torch.ones(3))
x.set_(torch.ones(3).storage())
x.set_(torch.ones(3).untyped_storage())
x.set_(torch.ones(3).untyped_storage(),1,(2,),(1,))
x.set_(torch.ones(3).untyped_storage(),1,(2,))
x.set_(torch.ones(3,dtype=torch.int))
(x.requires_grad_()*1).squeeze_()
(x.requires_grad_()*1)[:1].squeeze_()
(x.requires_grad_()*1).unsqueeze_(0)
(x.requires_grad_()*1).transpose_(0,1)
(x.requires_grad_()*1)[0].t_()
(x.requires_grad_()*1).as_strided_((2,),(1,))
(x.requires_grad_()*1).detach_()
(x.requires_grad_()*1).view(-1).detach_()
x.requires_grad_().detach_()
x.requires_grad_().transpose_(0,1)
x.requires_grad_().resize_(3)
(x.requires_grad_()*1).resize_(3)
x.requires_grad_().set_(torch.ones(3))
torch.from_numpy(__import__("numpy").ones(3)).resize_(5)
torch.from_numpy(__import__("numpy").ones(3)).resize_(2)
x.unsqueeze_(7)
x.transpose_(0,7)
"""
DERIVATIVES = r"""
x.view(6,4)
x.reshape(4,6)
x.transpose(0,1).reshape(6,4)
x.expand(3,2,3,4)
x[:,:1].expand(2,3,4)
x.permute(2,0,1)
x.transpose(0,2)
x[0].t()
x.select(1,2)
x[:,1:]
x[...,::2]
x[1,:,1]
x.narrow(1,1,2)
x[:1].squeeze()
x[:1].squeeze(0)
x[:1].squeeze((0,1))
x.unsqueeze(1)
x.as_strided((2,2),(1,2),3)
x.as_strided((3,4),(2,1),1)
x.transpose(0,1).as_strided((2,2),(3,5),2)
x[:,:1].expand(2,3,4).as_strided((2,4),(1,2),1)
x.diagonal()
x.diagonal(1,0,2)
x.unfold(2,2,1)
x.unfold(1,2,2)
x.unfold(0,1,1)
torch.cat(x.split(2,1)[1:],1)
x.split([1,3],2)[1]
x.split_with_sizes([1,3],2)[0]
x.unbind(1)[1]
torch.stack(x.unbind(1)[:2])
x.chunk(2,2)[0]
x.tensor_split(3,2)[1]
x.flatten(1)
x.unflatten(2,(2,2))
x.ravel()
x.movedim(0,2)
x.mT
x.T
x.clone()
x.contiguous()
x.transpose(0,1).contiguous()
x.to(torch.float32)
x.to(torch.float32,memory_format=torch.contiguous_format)
x.detach()
torch.cat([x,x])
torch.cat([x,x*2,x.new_zeros(0)],-1)
torch.stack([x,x*3],1)
torch.hstack([x,x])
torch.vstack([x[0],x[1]])
torch.dstack([x,x])
torch.column_stack([x[0,0],x[0,1]])
torch.flip(x,(0,2))
x.roll(1)
x.roll((1,2),(0,2))
x.rot90()
x.rot90(2,(0,2))
x.rot90(3,(1,2))
x.tril()
x.triu(1)
x.repeat(2,1,2)
x.repeat(2,2,1,1)
x.repeat(2,0,1)
torch.tile(x,(2,))
x.repeat_interleave(2)
x.repeat_interleave(3,1)
x.repeat_interleave(torch.tensor([1,2,0]),1)
torch.diag(x[0,0])
torch.diag(x[0,0],-1)
torch.diag(x[0])
torch.diag_embed(x,1,0,2)
torch.atleast_3d(x[0])
torch.constant_pad_nd(x,(1,2,0,1),3)
torch.constant_pad_nd(x,(-1,2,1,-1))
torch.meshgrid(x[0,0],x[0,1],indexing="ij")[0]
torch.meshgrid(x[0,0],x[0,1],indexing="xy")[1]
torch.complex(x,x*2)
torch.complex(x,x*2).real
torch.complex(x,x*2).imag
torch.view_as_real(torch.complex(x,x*2))
torch.view_as_complex(x.view(2,3,2,2))
torch.polar(x,x*2)
torch.broadcast_tensors(x[:, :1],x)[0]
x.clone().fill_(3)
x.clone().zero_()
x.clone().copy_(x[:1]*2)
x.clone().fill_(x[0,0,0])
torch.fill(x,x[0,0,0])
torch.zeros(2,3,4,dtype=torch.float64).copy_(x)
torch.zeros(2,3,4).copy_(x)
[y:=torch.zeros(2,3,4,dtype=torch.float64), y[:,1].copy_(x[:,0]), y][2]
[y:=x.clone(), y[:,1].copy_(x[:,0]*2), y][2]
[y:=x.clone(), y.view(-1)[3:9].mul_(2), y][2]
[y:=x.clone(), v:=y[1], v.mul_(x[0]), v.add_(1), v][2]
[y:=x.clone(), v:=y.transpose(0,1), y.mul_(2), v][3]
[y:=x.clone(), y.diagonal(0,1,2).fill_(5), y][2]
[y:=x.clone(), y.tril_(), y][2]
[y:=x.clone(), y[0].zero_(), y][2]
[y:=x.clone(), y.unfold(2,2,2).copy_(x[:,:,:,None].expand(2,3,4,2)[:,:,::2]*3), y][2]
x.swapaxes(0,1)
x.adjoint()
x.view_as(x)
x.expand_as(torch.ones(2,2,3,4))
x.hsplit(3)[0]
x.type_as(torch.ones(1))
x.float().double()
x.real
SLICE(x,1,0,2,1)
"""


# -- evaluating a line in one library -------------------------------------------------------------------------------
def slice_row(library: Any) -> Any:
    """`aten::slice`, which has no public name."""
    if library.__name__ == "torch":
        return library.ops.aten.slice
    row = submodule("_dispatch.registry").get("slice")
    return lambda t, dim=0, start=None, end=None, step=1: row.call((t, dim, start, end, step))


def shown(value: Any, library: Any) -> Any:
    """What must agree of a result."""
    if isinstance(value, library.Tensor):
        numbers = None if value.device.type == "meta" else value.detach().tolist()
        node = None if value.grad_fn is None else type(value.grad_fn).__name__
        return [
            "tensor",
            list(value.shape),
            list(value.stride()),
            str(value.dtype),
            str(value.device),
            numbers,
            node,
            value.requires_grad,
            value._is_view(),
            value.storage_offset(),
            value._version,
        ]
    if isinstance(value, (tuple, list)):
        return [shown(item, library) for item in value]
    if isinstance(value, (library.dtype, library.device)):
        return str(value)
    return value


def outcome(line: str, library: Any, setup: str) -> Any:
    space: dict[str, Any] = {"torch": library, "np": numpy, "SLICE": slice_row(library)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(setup, space)  # noqa: S102
        try:
            return shown(eval(line, space), library)  # noqa: S307
        except Exception as e:
            return [type(e).__name__, str(e).replace("privateuseone", "npu").strip()]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, (float, complex)) and type(a) is type(b):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    return type(a) is type(b) and bool(a == b)


def differences(table: str, setup: str) -> list[str]:
    oracle = _oracle.load()
    found = []
    for line in table.strip().splitlines():
        expected, actual = outcome(line, oracle, setup), outcome(line, torch, setup)
        if not same(actual, expected):
            found.append(f"{line}\n    expected {expected}\n    got      {actual}")
    return found


FAMILIES = {
    "views": (VIEWS, "x = torch.arange(24.0).view(2, 3, 4); e = torch.empty(0, 3); s = torch.tensor(1.0)"),
    "creation": (CREATION, "x = torch.ones(2, 3)"),
    "shapes": (
        SHAPES,
        "x = torch.arange(6.0).view(2, 3); s = torch.tensor(1.0); y = torch.arange(24.0).view(2, 3, 4); "
        "e = torch.empty(0); c4 = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)",
    ),
    "random": (RANDOM, "x = torch.ones(2, 3); g = torch.Generator().manual_seed(7); torch.manual_seed(0)"),
    "geometry in place": (GEOMETRY, "x = torch.arange(24.0).view(2, 3, 4).clone(); s = torch.tensor(1.0)"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("family", FAMILIES)
def test_lines_agree(family: str) -> None:
    found = differences(*FAMILIES[family])
    assert not found, f"{len(found)} lines differ:\n" + "\n".join(found)


# -- derivatives ----------------------------------------------------------------------------------------------------
def weights(library: Any, like: Any, salt: int) -> Any:
    """Numbers to weigh a result with, so that no gradient is lost by symmetry."""
    w = library.tensor([((i * 37 + salt * 11) % 13 - 6) / 5 for i in range(like.numel())], dtype=library.float64)
    w = w.reshape(tuple(like.shape))
    if like.is_complex():
        w = library.complex(w, w.flip(tuple(range(w.dim()))) * 0.5)
    return w.to(like.dtype)


def derivatives(line: str, library: Any) -> Any:
    """Node name, first and second derivative of an expression of `x = leaf * leaf`."""
    leaf = library.tensor([((i * 7) % 11 - 5) / 4 + 0.1 for i in range(24)], dtype=library.float64).reshape(2, 3, 4)
    leaf.requires_grad_(True)
    space: dict[str, Any] = {"torch": library, "SLICE": slice_row(library), "x": leaf * leaf}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = eval(line, space)  # noqa: S307
        if not out.requires_grad:
            return shown(out, library)
        grad = library.autograd.grad
        (first,) = grad(out, leaf, weights(library, out, 1), create_graph=True, allow_unused=True)
        found = [type(out.grad_fn).__name__, out._is_view(), out.detach().tolist()]
        if first is None:
            return [*found, None]
        found.append(first.detach().tolist())
        if first.requires_grad:
            (second,) = grad(first, leaf, weights(library, first, 2), allow_unused=True)
            found.append(None if second is None else second.tolist())
        return found


@pytest.mark.oracle
@pytest.mark.parametrize("line", DERIVATIVES.strip().splitlines())
def test_derivatives_agree(line: str) -> None:
    expected, actual = derivatives(line, _oracle.load()), derivatives(line, torch)
    assert same(actual, expected), f"expected {expected}\ngot {actual}"


# -- without PyTorch ------------------------------------------------------------------------------------------------
def test_a_conversion_that_changes_nothing_is_the_tensor_itself() -> None:
    x = torch.ones(2, 3)
    for same_tensor in (
        x.to(torch.float32),
        x.to("cpu"),
        x.to(x),
        x.float(),
        x.cpu(),
        x.contiguous(),
        x.type_as(x),
        x.to(device="cpu", dtype=torch.float32),
        x.to(memory_format=torch.contiguous_format),
    ):
        assert same_tensor is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.double().dtype is torch.float64 and x.double().stride() == (3, 1)


def test_seeds_give_the_same_numbers_again() -> None:
    torch.manual_seed(0)
    assert torch.rand(3).tolist() == pytest.approx([0.4962566, 0.7682218, 0.0884774], abs=1e-7)
    torch.manual_seed(0)
    assert torch.randn(3).tolist() == pytest.approx([1.5409961, -0.2934289, -2.1787894], abs=1e-6)
    state = torch.get_rng_state()
    first = (torch.rand(5).tolist(), torch.randperm(10).tolist(), torch.empty(4).normal_().tolist())
    torch.set_rng_state(state)
    assert (torch.rand(5).tolist(), torch.randperm(10).tolist(), torch.empty(4).normal_().tolist()) == first
    a, b = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    assert torch.randint(100, (20,), generator=a).tolist() == torch.randint(100, (20,), generator=b).tolist()


@mindtorch_only
def test_a_generator_can_be_pickled() -> None:
    g = torch.Generator().manual_seed(3)
    torch.rand(7, generator=g)
    again = pickle.loads(pickle.dumps(g))  # noqa: S301
    assert torch.rand(4, generator=again).tolist() == torch.rand(4, generator=g).tolist()


def test_distributions_have_their_moments() -> None:
    torch.manual_seed(1)
    n = 40000
    for t, mean, variance in (
        (torch.rand(n, dtype=torch.float64), 0.5, 1 / 12),
        (torch.randn(n, dtype=torch.float64), 0.0, 1.0),
        (torch.empty(n, dtype=torch.float64).uniform_(-1, 3), 1.0, 16 / 12),
        (torch.empty(n, dtype=torch.float64).normal_(2, 3), 2.0, 9.0),
        (torch.empty(n, dtype=torch.float64).exponential_(2), 0.5, 0.25),
        (torch.empty(n, dtype=torch.float64).geometric_(0.25), 4.0, 12.0),
        (torch.empty(n, dtype=torch.float64).bernoulli_(0.3), 0.3, 0.21),
        (torch.randint(0, 10, (n,)).to(torch.float64), 4.5, 8.25),
    ):
        values = numpy.array(t.tolist())
        assert abs(values.mean() - mean) < 6 * (variance / n) ** 0.5
        assert abs(values.var() - variance) < 0.1 * variance
    drawn = torch.multinomial(torch.tensor([0.1, 0.0, 0.9]), 2000, replacement=True).tolist()
    assert 1 not in drawn and 100 < drawn.count(0) < 320
    assert sorted(torch.multinomial(torch.ones(6), 6).tolist()) == list(range(6))


def test_random_fills_bump_the_version_once() -> None:
    x = torch.ones(4)
    fills = ("uniform_", "normal_", "random_", "exponential_", "bernoulli_", "cauchy_", "log_normal_")
    for i, fill in enumerate(fills):
        getattr(x, fill)()
        assert x._version == i + 1


def test_numpy_memory_is_shared_both_ways() -> None:
    a = numpy.arange(12.0).reshape(3, 4)[:, ::2]
    t = torch.from_numpy(a)
    assert t.shape == (3, 2) and t.stride() == (4, 2)
    t[1, 1] = 50.0
    assert a[1, 1] == 50.0
    a[0, 0] = -1.0
    assert t[0, 0].item() == -1.0
    raw = bytearray(8)
    torch.frombuffer(raw, dtype=torch.int16, count=2, offset=2).fill_(257)
    assert raw == bytes([0, 0, 1, 1, 1, 1, 0, 0])


def test_the_device_context_redirects_factories() -> None:
    x = torch.ones(2)
    with torch.device("meta"):
        made = [
            torch.tensor([1]),
            torch.as_tensor([1]),
            torch.zeros(2),
            torch.arange(3),
            torch.rand(2),
            torch.eye(2),
            torch.full((2,), 1),
            torch.randperm(3),
            torch.empty_strided((2,), (1,)),
            torch.linspace(0, 1, 2),
        ]
        assert {t.device.type for t in made} == {"meta"}
        kept = [torch.zeros_like(x), x.new_zeros(2), torch.from_numpy(numpy.ones(2)), torch.zeros(2, device="cpu")]
        assert {t.device.type for t in kept} == {"cpu"}
    assert torch.zeros(2).device.type == "cpu"


META_CALLS = r"""
torch.cat([x, x], 1)
torch.stack([x, x])
torch.flip(x, (0,))
x.roll(1)
x.rot90()
x.tril()
x.repeat(2, 2)
torch.diag_embed(x)
torch.constant_pad_nd(x, (1, 1))
x.as_strided((2, 2), (1, 2))
x.transpose(0, 1).reshape(6)
x.clone()
x.to(torch.float64)
x.fill_(2)
x.zero_()
x.copy_(torch.ones(3))
torch.zeros_like(x)
x.new_full((2,), 3)
x.normal_()
torch.bernoulli(x)
torch.multinomial(x, 2)
x.unfold(1, 2, 1)
"""


@pytest.mark.parametrize("line", META_CALLS.strip().splitlines())
def test_meta_gives_the_same_layout(line: str) -> None:
    real = eval(line, {"torch": torch, "x": torch.ones(2, 3)})  # noqa: S307
    meta = eval(
        line.replace("torch.ones(3)", "torch.ones(3, device='meta')"),  # noqa: S307
        {"torch": torch, "x": torch.ones(2, 3, device="meta")},
    )
    assert (meta.shape, meta.stride(), meta.dtype) == (real.shape, real.stride(), real.dtype)
    assert meta.device.type == "meta"


def test_overlapping_as_strided_accumulates() -> None:
    x = torch.arange(5.0, dtype=torch.float64, requires_grad=True)
    windows = x.as_strided((3, 3), (1, 1))
    (windows * torch.arange(9.0, dtype=torch.float64).view(3, 3)).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0, 12.0, 12.0, 8.0]


def test_a_failed_call_changes_nothing() -> None:
    x = torch.arange(4.0)
    for call in (
        lambda: x.copy_(torch.ones(5)),
        lambda: x.fill_(1j),
        lambda: x.fill_(torch.ones(2)),
        lambda: x[1:].copy_(x[:-1]),
        lambda: x.uniform_(1, 0),
        lambda: x.normal_(0, -1),
        lambda: x.random_(3, 1),
    ):
        with pytest.raises(RuntimeError):
            call()
        assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and x._version == 0
